//! A packet-level simulator that carries the engine unchanged.
