-- Reads members of the index and the resources that they lead to in one step. It is
-- used when something has changed each time that ranges were read in two steps,
-- because the server does nothing else meanwhile.
-- KEYS  index
-- ARGV  the prefix of the keys of resources, how many members of a range are looked
--       at, the maximum number of bytes of resources, then for each range: from,
--       to, 'rev' or '', the maximum number of members, the length of a reference's
--       prefix, and the tuple of the namespace that is wanted ('' for all)
-- Returns for each range the last member that was looked at, '' if the range ends
-- there, and the members; then the resources, each behind its key
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

-- wanted says whether the key, a tuple, lies in the namespace.
local function wanted(key, namespace)
  if namespace == '' then return true end
  local kind = after(key, 1)
  return sub(key, kind, kind + #namespace - 1) == namespace
end

-- read returns the members of one range, behind the last one that was looked at.
local function read(from, to, rev, most, prefix, namespace, cap)
  local out, looked, PAGE = { '' }, 0, 512
  while #out <= most do
    local page
    if rev == 'rev' then
      page = redis.call('ZRANGE', KEYS[1], from, to, 'BYLEX', 'REV', 'LIMIT', '0', PAGE)
    else
      page = redis.call('ZRANGE', KEYS[1], from, to, 'BYLEX', 'LIMIT', '0', PAGE)
    end
    for _, m in ipairs(page) do
      if #out > most then break end
      if wanted(target(m, prefix), namespace) then out[#out + 1] = m end
      looked, from = looked + 1, '(' .. m
    end
    if #out > most or looked >= cap then
      out[1] = sub(from, 2)
      return out
    end
    if #page < PAGE then break end
  end
  return out
end

local reply, seen, records, bytes = {}, {}, {}, 0
local items, cap, room = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
for a = 4, #ARGV, 6 do
  local prefix = tonumber(ARGV[a + 4])
  local members = read(ARGV[a], ARGV[a + 1], ARGV[a + 2], tonumber(ARGV[a + 3]), prefix, ARGV[a + 5], cap)
  reply[#reply + 1] = members
  for i = 2, #members do
    local key = target(members[i], prefix)
    if not seen[key] and bytes < room then
      seen[key] = true
      local value = redis.call('GET', items .. key) or ''
      bytes = bytes + #value
      records[#records + 1] = key
      records[#records + 1] = value
    end
  end
end
reply[#reply + 1] = records
return reply
