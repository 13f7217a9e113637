-- Reads members of the index and the resources that they lead to in one step. It is
-- used when something has changed each time that ranges were read in two steps,
-- because the server does nothing else meanwhile; and to read no more than the heads of
-- many resources, which takes half of the time of as many commands.
-- KEYS  index
-- ARGV  the prefix of the keys of resources, the maximum number of bytes of resources,
--       how many bytes of each are read ('' for all), then for each range: from, to, 'rev'
--       or '', the maximum number of members, and how many bytes a member has before the
--       key that it leads to
-- Returns for each range its members; then the resources, each behind its key
local call, sub = redis.call, string.sub
local reply, seen, records, bytes = {}, {}, {}, 0
local items, room, head = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
for i = 4, #ARGV, 5 do
  local from, to, rev, most, prefix = unpack(ARGV, i, i + 4)
  local members
  if rev == 'rev' then
    members = call('ZRANGE', KEYS[1], from, to, 'BYLEX', 'REV', 'LIMIT', '0', most)
  else
    members = call('ZRANGE', KEYS[1], from, to, 'BYLEX', 'LIMIT', '0', most)
  end
  reply[#reply + 1] = members
  for _, member in ipairs(members) do
    local key = sub(member, prefix + 1)
    if not seen[key] and bytes < room then
      seen[key] = true
      local value = head and call('GETRANGE', items .. key, 0, head - 1) or not head and call('GET', items .. key) or ''
      bytes = bytes + #value
      records[#records + 1] = key
      records[#records + 1] = value
    end
  end
end
reply[#reply + 1] = records
return reply
