/* The cuckoo filter: the kind named "cuckoo". */
#ifndef NESTGUARD_CUCKOO_H
#define NESTGUARD_CUCKOO_H

#include "filters/filter_kind.h"

extern const struct filter_ops cuckoo_ops;

#endif
