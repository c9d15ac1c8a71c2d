-- Acquires one slot of a semaphore for one lease: as acquire.lua does, if the name is a semaphore of this size.
--
-- KEYS  1 slot: P:{name}:slot:i/k   2 admission record
-- ARGV  as in acquire.lua
-- Reply as in acquire.lua. {8, kind, time us}: the name is of another kind, or a semaphore of another size
--
-- Safe to repeat, as acquire.lua is. Only a granted call marks the name, so a refusal prolongs no mark.
-- include slot_common.lua
-- include stamp.lua
if expected and other then
  -- include now.lua
  return {8, other, now}
end
local function acquire()
  -- include acquire.lua
end
local reply = acquire()
if reply == 1 then prolong_mark() end
return reply
