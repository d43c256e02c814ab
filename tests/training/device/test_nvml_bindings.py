#!/usr/bin/env python3
"""NVML's Python bindings over the simulated NVML library: the calls of monitors and energy meters.

usage: test_nvml_bindings.py FOLDER_OF_LIBRARY SAMPLE_GPU

FOLDER_OF_LIBRARY contains libnvidia-ml.so.1; SAMPLE_GPU FILE creates a simulated GPU. The test uses the bindings
themselves (nvidia-ml-py) if they can be imported. Debian has no package of them, so without them it calls the same
functions through ctypes exactly as they do: versioned names, the two-call patterns, their structures.
"""

import ctypes
import os
import subprocess
import sys
import tempfile
import unittest

FOLDER, SAMPLE_GPU = sys.argv[1:3]
NVML_ERROR_INSUFFICIENT_SIZE = 7


class NvmlError(Exception):
    def __init__(self, value):
        super().__init__(value)
        self.value = value


class FieldValue(ctypes.Structure):
    """c_nvmlFieldValue_t"""

    class Value(ctypes.Union):
        _fields_ = [("dVal", ctypes.c_double), ("uiVal", ctypes.c_uint), ("ulVal", ctypes.c_ulong),
                    ("ullVal", ctypes.c_ulonglong), ("sllVal", ctypes.c_longlong), ("siVal", ctypes.c_int),
                    ("usVal", ctypes.c_ushort)]  # fmt: skip

    _fields_ = [("fieldId", ctypes.c_uint32), ("scopeId", ctypes.c_uint32), ("timestamp", ctypes.c_int64),
                ("latencyUsec", ctypes.c_int64), ("valueType", ctypes.c_uint), ("nvmlReturn", ctypes.c_uint),
                ("value", Value)]  # fmt: skip


class PciInfo(ctypes.Structure):
    """nvmlPciInfo_v3_t"""

    _fields_ = [("busIdLegacy", ctypes.c_char * 16), ("domain", ctypes.c_uint), ("bus", ctypes.c_uint),
                ("device", ctypes.c_uint), ("pciDeviceId", ctypes.c_uint), ("pciSubSystemId", ctypes.c_uint),
                ("busId", ctypes.c_char * 32)]  # fmt: skip


class Bindings:
    """The calls that nvidia-ml-py makes, one method each, with its names."""

    def __init__(self, folder):
        self.library = ctypes.CDLL(os.path.join(folder, "libnvidia-ml.so.1"))
        self.library.nvmlErrorString.restype = ctypes.c_char_p

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code != 0:
            raise NvmlError(code)

    def number(self, name, kind, *arguments):
        value = kind()
        self.call(name, *arguments, ctypes.byref(value))
        return value.value

    def text(self, name, *arguments):
        buffer = ctypes.create_string_buffer(96)
        self.call(name, *arguments, buffer, ctypes.c_uint(96))
        return buffer.value.decode()

    def clocks(self, name, *arguments):
        count = ctypes.c_uint(0)
        code = getattr(self.library, name)(*arguments, ctypes.byref(count), None)
        if code != NVML_ERROR_INSUFFICIENT_SIZE:
            raise NvmlError(code)
        values = (ctypes.c_uint * count.value)()
        self.call(name, *arguments, ctypes.byref(count), values)
        return list(values)

    def nvmlInit(self):
        self.call("nvmlInitWithFlags", ctypes.c_uint(0))

    def nvmlShutdown(self):
        self.call("nvmlShutdown")

    def nvmlErrorString(self, code):
        return self.library.nvmlErrorString(ctypes.c_int(code)).decode()

    def nvmlSystemGetDriverVersion(self):
        return self.text("nvmlSystemGetDriverVersion")

    def nvmlDeviceGetCount(self):
        return self.number("nvmlDeviceGetCount_v2", ctypes.c_uint)

    def nvmlDeviceGetHandleByIndex(self, index):
        handle = ctypes.c_void_p()
        self.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
        return handle

    def nvmlDeviceGetHandleByUUID(self, uuid):
        handle = ctypes.c_void_p()
        self.call("nvmlDeviceGetHandleByUUID", ctypes.c_char_p(uuid.encode()), ctypes.byref(handle))
        return handle

    def nvmlDeviceGetName(self, handle):
        return self.text("nvmlDeviceGetName", handle)

    def nvmlDeviceGetUUID(self, handle):
        return self.text("nvmlDeviceGetUUID", handle)

    def nvmlDeviceGetPciInfo(self, handle):
        info = PciInfo()
        self.call("nvmlDeviceGetPciInfo_v3", handle, ctypes.byref(info))
        return info

    def nvmlDeviceGetArchitecture(self, handle):
        return self.number("nvmlDeviceGetArchitecture", ctypes.c_uint, handle)

    def nvmlDeviceGetTotalEnergyConsumption(self, handle):
        return self.number("nvmlDeviceGetTotalEnergyConsumption", ctypes.c_ulonglong, handle)

    def nvmlDeviceGetPowerUsage(self, handle):
        return self.number("nvmlDeviceGetPowerUsage", ctypes.c_uint, handle)

    def nvmlDeviceGetFieldValues(self, handle, ids):
        values = (FieldValue * len(ids))()
        for value, field in zip(values, ids):
            value.fieldId, value.scopeId = field if isinstance(field, tuple) else (field, 0)
        self.call("nvmlDeviceGetFieldValues", handle, ctypes.c_int32(len(ids)), ctypes.byref(values))
        return values

    def nvmlDeviceGetSupportedMemoryClocks(self, handle):
        return self.clocks("nvmlDeviceGetSupportedMemoryClocks", handle)

    def nvmlDeviceGetSupportedGraphicsClocks(self, handle, memory):
        return self.clocks("nvmlDeviceGetSupportedGraphicsClocks", handle, ctypes.c_uint(memory))

    def nvmlDeviceGetClockInfo(self, handle, kind):
        return self.number("nvmlDeviceGetClockInfo", ctypes.c_uint, handle, ctypes.c_uint(kind))

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle):
        return self.number("nvmlDeviceGetCurrentClocksEventReasons", ctypes.c_ulonglong, handle)

    def nvmlDeviceSetGpuLockedClocks(self, handle, least, most):
        self.call("nvmlDeviceSetGpuLockedClocks", handle, ctypes.c_uint(least), ctypes.c_uint(most))

    def nvmlDeviceResetGpuLockedClocks(self, handle):
        self.call("nvmlDeviceResetGpuLockedClocks", handle)

    def nvmlDeviceGetPowerManagementLimitConstraints(self, handle):
        least, most = ctypes.c_uint(), ctypes.c_uint()
        self.call("nvmlDeviceGetPowerManagementLimitConstraints", handle, ctypes.byref(least), ctypes.byref(most))
        return [least.value, most.value]

    def nvmlDeviceSetPowerManagementLimit(self, handle, milliwatts):
        self.call("nvmlDeviceSetPowerManagementLimit", handle, ctypes.c_uint(milliwatts))

    def nvmlDeviceGetEnforcedPowerLimit(self, handle):
        return self.number("nvmlDeviceGetEnforcedPowerLimit", ctypes.c_uint, handle)

    def nvmlDeviceSetPersistenceMode(self, handle, mode):
        self.call("nvmlDeviceSetPersistenceMode", handle, ctypes.c_uint(mode))

    def nvmlDeviceGetPersistenceMode(self, handle):
        return self.number("nvmlDeviceGetPersistenceMode", ctypes.c_uint, handle)

    def nvmlDeviceSetMemoryLockedClocks(self, handle, least, most):
        self.call("nvmlDeviceSetMemoryLockedClocks", handle, ctypes.c_uint(least), ctypes.c_uint(most))


def text(value):
    return value.decode() if isinstance(value, bytes) else value


class OverTheLookAlike(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="perseus-nvml-")
        self.addCleanup(self.folder.cleanup)
        for name in ("0", "1"):
            subprocess.run([SAMPLE_GPU, os.path.join(self.folder.name, name)], check=True)
        os.environ["PERSEUS_SIMULATED_GPUS"] = self.folder.name
        self.nvml, self.Error = bindings()
        self.nvml.nvmlInit()
        self.addCleanup(self.nvml.nvmlShutdown)
        self.gpu = self.nvml.nvmlDeviceGetHandleByIndex(0)

    def test_properties_of_the_devices(self):
        nvml = self.nvml
        self.assertEqual(nvml.nvmlDeviceGetCount(), 2)
        self.assertTrue(text(nvml.nvmlSystemGetDriverVersion()).startswith("simulated"))
        self.assertEqual(text(nvml.nvmlDeviceGetName(self.gpu)), "Perseus simulated GPU")
        uuid = text(nvml.nvmlDeviceGetUUID(self.gpu))
        again = nvml.nvmlDeviceGetHandleByUUID(uuid)
        self.assertEqual(text(nvml.nvmlDeviceGetUUID(again)), uuid)
        self.assertRegex(text(nvml.nvmlDeviceGetPciInfo(self.gpu).busId), r"^[0-9A-F]{8}:[0-9A-F]{2}:00\.0$")
        self.assertEqual(nvml.nvmlDeviceGetArchitecture(self.gpu), 7)

    def test_clocks_that_are_set_are_there(self):
        nvml, gpu = self.nvml, self.gpu
        memory = nvml.nvmlDeviceGetSupportedMemoryClocks(gpu)
        clocks = nvml.nvmlDeviceGetSupportedGraphicsClocks(gpu, max(memory))
        self.assertEqual(clocks, [1400, 700, 350])
        nvml.nvmlDeviceSetGpuLockedClocks(gpu, 350, 350)
        self.assertEqual(nvml.nvmlDeviceGetClockInfo(gpu, 1), 350)
        nvml.nvmlDeviceResetGpuLockedClocks(gpu)
        self.assertEqual(nvml.nvmlDeviceGetClockInfo(gpu, 1), 1400)
        self.assertEqual(nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu), 1)  # idle

    def test_power_energy_and_fields(self):
        nvml, gpu = self.nvml, self.gpu
        self.assertEqual(nvml.nvmlDeviceGetPowerUsage(gpu), 50_000)
        energy, instant, scoped, unknown = nvml.nvmlDeviceGetFieldValues(gpu, [83, (186, 0), (186, 1), 4000])
        self.assertEqual([energy.nvmlReturn, instant.nvmlReturn, scoped.nvmlReturn, unknown.nvmlReturn], [0, 0, 3, 3])
        self.assertEqual(instant.value.uiVal, 50_000)
        self.assertLessEqual(energy.value.ullVal, nvml.nvmlDeviceGetTotalEnergyConsumption(gpu))
        least, most = nvml.nvmlDeviceGetPowerManagementLimitConstraints(gpu)
        nvml.nvmlDeviceSetPowerManagementLimit(gpu, least)
        self.assertEqual(nvml.nvmlDeviceGetEnforcedPowerLimit(gpu), least)
        with self.assertRaises(self.Error) as refused:
            nvml.nvmlDeviceSetPowerManagementLimit(gpu, most + 1)
        self.assertEqual(refused.exception.value, 2)

    def test_persistence_errors_and_unsupported_settings(self):
        nvml, gpu = self.nvml, self.gpu
        nvml.nvmlDeviceSetPersistenceMode(gpu, 0)
        self.assertEqual(nvml.nvmlDeviceGetPersistenceMode(gpu), 0)
        with self.assertRaises(self.Error) as missing:
            nvml.nvmlDeviceGetHandleByIndex(2)
        self.assertEqual(missing.exception.value, 2)
        with self.assertRaises(self.Error) as memory:
            nvml.nvmlDeviceSetMemoryLockedClocks(gpu, 1593, 1593)
        self.assertEqual(memory.exception.value, 3)
        self.assertEqual(text(nvml.nvmlErrorString(4)), "no permission")

    def test_another_process_sees_the_same_gpu(self):
        self.nvml.nvmlDeviceSetGpuLockedClocks(self.gpu, 700, 700)
        script = (
            "import ctypes, sys; n = ctypes.CDLL(sys.argv[1]); n.nvmlInit_v2(); h = ctypes.c_void_p();"
            "n.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(h)); c = ctypes.c_uint();"
            "n.nvmlDeviceGetClockInfo(h, 1, ctypes.byref(c)); print(c.value)"
        )
        library = os.path.join(FOLDER, "libnvidia-ml.so.1")
        seen = subprocess.run([sys.executable, "-c", script, library], check=True, capture_output=True, text=True)
        self.assertEqual(seen.stdout.strip(), "700")


def bindings():
    try:
        import pynvml
    except ImportError:
        return Bindings(FOLDER), NvmlError
    pynvml.nvmlLib = ctypes.CDLL(os.path.join(FOLDER, "libnvidia-ml.so.1"))
    return pynvml, pynvml.NVMLError


if __name__ == "__main__":
    print("bindings:", type(bindings()[0]).__name__, file=sys.stderr)
    unittest.main(argv=sys.argv[:1])
