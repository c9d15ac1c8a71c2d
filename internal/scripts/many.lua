-- Runs ordinary acquires and releases one after the other, each as a call of its own would be: what a busy connection has
-- to send at one time, for less than what as many calls cost. The functions acquire and release are the texts of
-- acquire.lua and release.lua; see script.go.
--
-- KEYS  1 marker   2... the lock of each
-- ARGV  1 the marker that the connection expects; '' when the guard is off   2 TTL in ms of what is acquired
--       3 a letter for each: 'a' acquire, 'r' release; what is behind the last does not matter
--       4 what argument 5 is to each acquire   5 what argument 4 is to each release; '' where it is left out
--       6... for each the hold id and the ballot
-- Reply an array of what each script answers by itself, its errors included
--
-- The marker is compared and the time is read once. An error ends the one that it is about.
-- A script that has written is not refused memory any more, which an acquire behind a release would be by itself: so it is
-- asked for first, by a write that changes nothing, and function room stands before what an acquire writes.
--
-- Safe to repeat, since each of them is.
local function attempt(script, keys, argv)
  local fine, reply = pcall(script, keys, argv)
  if fine then return reply end
  -- Servers before 7.0 put the line before some errors, and a minus.
  local text = string.gsub(tostring(reply), '^@user_script: %d+: %-?', '')
  if not string.find(text, '^%u+ ') then text = 'ERR ' .. text end
  return {err = text}
end
local marker, known, kinds, replies = KEYS[1], ARGV[1], ARGV[3], {}
local unproved, gives = known, ARGV[5] ~= '' and ARGV[5] or nil
if known ~= '' and redis.pcall('GET', marker) == known then unproved = '' end
if string.find(string.sub(kinds, 1, #KEYS - 1), 'ra', 1, true) then
  local probe = redis.pcall('ZADD', string.sub(KEYS[2], 1, -5) .. 'queue', 'XX', '0', '')
  if type(probe) == 'table' and probe.err and string.find(probe.err, 'OOM ', 1, true) then full = probe.err end
end
-- The words of a call are put where those of the one before were, and keys made when they are looked at: most calls need two.
local stem
local last = {[2] = 'bar', [3] = 'queue', [4] = 'alive'} -- any other key is an error
local keys = {__index = function(_, i) return stem .. last[i] end}
local asked, ended = setmetatable({[3] = marker}, keys), setmetatable({[5] = marker}, keys)
local ask, ending = {unproved, '', ARGV[2], '', ARGV[4]}, {known, '', '', gives}
for i = 2, #KEYS do
  local at = 2 * i + 2
  stem = string.sub(KEYS[i], 1, -5)
  if string.byte(kinds, i - 1) == 97 then
    asked[1], ask[2], ask[4] = KEYS[i], ARGV[at], ARGV[at + 1]
    replies[i - 1] = attempt(acquire, asked, ask)
  else
    ended[1], ended.stem, ending[2], ending[3] = KEYS[i], stem, ARGV[at], ARGV[at + 1]
    replies[i - 1] = attempt(release, ended, ending)
  end
end
return replies
