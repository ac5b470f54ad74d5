"""A standby of another PostgreSQL, and what a failover to it takes."""
import shutil
import subprocess

import servers
from servers import PATIENCE
from waiting import wait_until


class Standby(servers.Postgres):
    """Ready once it answers."""

    GUARD_ROLE = "SELECT 1"  # it came with the rest

    def __init__(self, primary, **settings):
        super().__init__(**settings)
        self.primary = primary

    def create(self):
        shutil.chown(self.directory, "postgres")
        subprocess.run([servers.AS_POSTGRES, "pg_basebackup", "-h", "127.0.0.1", "-p",
                        str(self.primary.port), "-U", "postgres", "-D", "data", "-R", "-c", "fast"],
                       cwd=self.directory, check=True, capture_output=True)

    def wait_replayed(self):
        """Everything that the primary has committed is here, too."""
        end = value(self.primary, "SELECT pg_current_wal_flush_lsn()")
        wait_until(lambda: value(self, f"SELECT pg_last_wal_replay_lsn() >= '{end}'"), PATIENCE,
                   f"the replay of {end}")

    def promote(self):
        assert value(self, f"SELECT pg_promote(true, {PATIENCE})")


def value(server, sql, database="postgres"):
    connection = server.connect(database)
    try:
        cursor = connection.cursor()
        cursor.execute(sql)
        return cursor.fetchone()[0]
    finally:
        connection.close()
