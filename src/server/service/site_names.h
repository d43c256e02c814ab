// Checks the names in a site's document before it is stored. A stored document is read without it.
//
// Errors:  usage: the first name that hides something, is blank, or stands twice.
// Cost:    O(names x log names).
// Threads: pure function.
#pragma once

#include "base/result.h"
#include "server/jobs/site_document.h"

namespace perseus::service {

Status check_site_names(const jobs::SiteDocument& document);

}  // namespace perseus::service
