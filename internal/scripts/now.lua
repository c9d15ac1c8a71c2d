-- The time of this master in us, and how far from it a ballot may be.
local t, window = call('TIME'), 15000000
local now = t[1] * 1000000 + t[2]
