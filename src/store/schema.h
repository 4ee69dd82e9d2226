#pragma once

#include <string>

#include "kymo/result.h"
#include "store/database.h"

namespace kymo::store {

// Makes the tables of a new file; brings one of an older format up to this one, in a transaction:
// after an error it is as it was. Refuses a newer one by name, and a damaged one with data_loss.
Result<void> prepare(Database& db, const std::string& path);

}  // namespace kymo::store
