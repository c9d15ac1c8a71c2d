-- Extends an existing lease of a slot, and writes its depth and its value: as extend.lua does, if the name is a
-- semaphore of this size.
--
-- KEYS  1 slot: P:{name}:slot:i/k   2 admission record
-- ARGV  as in extend.lua
-- Reply as in extend.lua. {8, kind, time us}: the name is of another kind, or a semaphore of another size
--
-- Safe to repeat, as extend.lua is. If another program has deleted the mark, an extension writes it again.
-- include slot_common.lua
if other then
  -- include now.lua
  return {8, other, now}
end
local function extend()
  -- include extend.lua
end
local reply = extend()
if reply == 1 then prolong_mark() end
return reply
