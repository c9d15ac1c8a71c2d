package sim

// newest maps seeds, modulo 40, to the newest kinds. All other seeds have the kinds that they had before.
var newest = map[uint64]kind{32: records, 34: durables, 35: jumps}
