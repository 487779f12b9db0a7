"""The documents of the data model, field for field. Pure: no I/O, no SDK, no clock."""
