-- One step through the keys of a master. Writes nothing.
--
-- KEYS  none
-- ARGV  1 cursor   2 pattern   3 how many keys to look at, about
-- Reply that of SCAN: {next cursor, {keys}}
--
-- Safe to repeat: it only reads.
return redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
