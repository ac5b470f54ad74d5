"""A guard and its cache on one half of the cores; clients and database on the other."""
import rig

CACHE_CORES, OTHER_CORES = rig.halves()
ITEMS = {"name": "items", "key": "item:{id}", "table": "items", "value": "payload", "ttl": "1h"}


class Postgres(rig.Postgres):
    cores = OTHER_CORES


class Redis(rig.Redis):
    cores = CACHE_CORES


class Nestguard(rig.Nestguard):
    cores = CACHE_CORES
