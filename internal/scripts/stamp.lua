-- Whether the admission record of this master is the one that the caller expects: records begin with a stamp.
local expected = ARGV[1] == '' or call('GETRANGE', KEYS[2], '0', '18') == ARGV[1]
