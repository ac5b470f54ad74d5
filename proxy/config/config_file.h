/* The configuration as a YAML document, before anybody asks what it means. */
#ifndef NESTGUARD_CONFIG_FILE_H
#define NESTGUARD_CONFIG_FILE_H

#include "base/problem.h"

#include <yaml.h>

/* What is said of a file with nothing in it. */
extern const char config_file_empty[];

/* Reads the file, which must hold one document. 0 and *out, freed with yaml_document_delete(); or
 * -EINVAL when it is not YAML, empty, or more than one document; or another negative errno when it
 * cannot be read. What is wrong goes to `problems`. */
int config_file_read(yaml_document_t *out, const char *path, struct problems *problems);

#endif
