-- Reads members of the index and the resources they lead to in one step. It is
-- for ranges of which something was moved each time they were read in two: it
-- holds the server for all of it.
-- KEYS  index
-- ARGV  what the keys of resources begin with, then for each range: from, to,
--       'rev' or '', the most members, and the length of the prefix of a
--       reference
local byte, find, sub = string.byte, string.find, string.sub

-- after returns where the tuple element at i ends.
local function after(m, i)
  local tag = byte(m, i)
  if tag == 3 then return i + 9 end
  if tag ~= 2 then return i + 1 end
  while true do
    i = find(m, '\0', i + 1, true)
    if not i then return #m + 1 end
    if byte(m, i + 1) ~= 255 then return i + 1 end
    i = i + 1
  end
end

-- target is the tuple of the key that a member leads to.
local function target(m, prefix)
  if byte(m, 1) ~= 105 then return sub(m, 2 + prefix) end
  local kind = after(m, 2)
  local i, last, before = kind, 0, 0
  while i <= #m do
    before, last, i = last, i, after(m, i)
  end
  return sub(m, 2, kind - 1) .. sub(m, before)
end

local reply, seen, records, bytes = {}, {}, {}, 0
for a = 2, #ARGV, 5 do
  local members
  if ARGV[a + 2] == 'rev' then
    members = redis.call('ZRANGE', KEYS[1], ARGV[a], ARGV[a + 1], 'BYLEX', 'REV', 'LIMIT', '0', ARGV[a + 3])
  else
    members = redis.call('ZRANGE', KEYS[1], ARGV[a], ARGV[a + 1], 'BYLEX', 'LIMIT', '0', ARGV[a + 3])
  end
  reply[#reply + 1] = members
  for _, m in ipairs(members) do
    local key = target(m, tonumber(ARGV[a + 4]))
    if not seen[key] and bytes < 16777216 then
      seen[key] = true
      local value = redis.call('GET', ARGV[1] .. key) or ''
      bytes = bytes + #value
      records[#records + 1] = key
      records[#records + 1] = value
    end
  end
end
reply[#reply + 1] = records
return reply
