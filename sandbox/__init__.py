"""Running a memory policy that one cannot trust: one interface, several back ends, one wire protocol."""
