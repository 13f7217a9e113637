-- Reads the states of logs, and the entries after an id in each. The entries of all
-- logs together are bounded in bytes: the logs are read one after the other until
-- there is no room left.
-- KEYS  meta and log of each shard
-- ARGV  the maximum number of entries of one log, the maximum number of bytes of
--       all, '1' to return one entry even if it is larger than that, then for each
--       shard the id ('' to read no entries)
-- Returns for each shard: epoch, sequence, trim mark, older epochs, whether there
-- may be more entries ('1' or ''), and the entries
local call, match = redis.call, string.match
local limit, room, oversize = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1'
local STEP = 8 -- entries that are read before their size is known

local reply = {}
for i = 1, #KEYS, 2 do
  local state = call('HMGET', KEYS[i], 'epoch', 'seq', 'trimmed', 'epochs')
  local place, entries, more = ARGV[3 + (i + 1) / 2], {}, ''
  local open = place ~= ''
  while open do
    local page = room > 0 and call('XRANGE', KEYS[i + 1], '(' .. place, '+', 'COUNT', STEP) or {}
    if room <= 0 then more = '1' end
    open = #page == STEP
    for _, entry in ipairs(page) do
      local fields = entry[2]
      local size = tonumber(match(fields[2], '^%l\n(%d+)\n')) or 0
      size = math.max(size, #fields[2] + #(fields[4] or '') + #(fields[6] or ''))
      if #entries == limit or size > room and not oversize then
        more, open = '1', false
        break
      end
      room, oversize, place = room - size, false, entry[1]
      entries[#entries + 1] = entry
    end
  end
  state[5], state[6] = more, entries
  reply[#reply + 1] = state
end
return reply
