-- Returns the fields of an admission record, or no fields if the record cannot be read.
local function fields(record)
  local values = {}
  for key, value in string.gmatch(string.match(record, '^v4 .*') or '', ' (%l+)=(%S+)') do values[key] = value end
  return values
end
