-- One step through the keys of a master. Writes nothing.
--
-- KEYS  none
-- ARGV  1 cursor   2 pattern   3 number of keys to examine, approximately
-- Reply {next cursor, {keys}}, as of SCAN
--
-- Safe to repeat, because the script only reads.
return redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
