-- True if this master's admission record begins with the stamp that the caller expects, or if no stamp is expected.
local expected = ARGV[1] == '' or call('GETRANGE', KEYS[2], '0', '18') == ARGV[1]
