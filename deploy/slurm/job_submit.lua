-- job_submit/lua: jobs of the partition "gpu" get the address of the Perseus server unless they name one.
function slurm_job_submit(job_desc, part_list, submit_uid)
  if job_desc.partition == "gpu" and job_desc.environment ~= nil then
    if job_desc.environment["PERSEUS_SERVER"] == nil then
      job_desc.environment["PERSEUS_SERVER"] = "http://head:7787"
    end
  end
  return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return slurm.SUCCESS
end
