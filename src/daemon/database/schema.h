#pragma once

#include <string>

#include "base/sqlite/database.h"
#include "kymo/result.h"

namespace kymo::store {

// Makes the tables of a new file. Brings a file of an older format to the present format, in a
// transaction: after an error the file is unchanged.
// Errors: the file has a newer format, which the message names; data_loss: it is damaged.
Result<void> prepare(Database& db, const std::string& path);

}  // namespace kymo::store
