-- The time of this master, and the maximum difference between this time and a ballot, in us.
local t, window = call('TIME'), 15000000
local now = t[1] * 1000000 + t[2]
