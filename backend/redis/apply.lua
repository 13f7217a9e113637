-- The general case, for any number of actions of any kind.

-- bound says whether a live resource other than the key's holds a bound
-- reference to it. A referrer that does not decode counts as live.
local function bound(prefix, own, key)
  local items = sub(key, 1, #key - #own)
  local from = '[' .. prefix
  while true do
    local page = call('ZRANGE', KEYS[2], from, '(' .. prefix .. '\255', 'BYLEX', 'LIMIT', '0', '64')
    for _, member in ipairs(page) do
      local referrer = sub(member, #prefix + 1)
      if referrer ~= own then
        local r = load(items .. referrer, false)
        if r and (r.damaged or not expired(r, now)) then return true end
      end
      from = '(' .. member
    end
    if #page < 64 then return false end
  end
end

-- judge returns the name of the condition that fails, nil if all hold.
local function judge(a, r)
  local presence = ARGV[a + 3]
  if presence == 'a' then return r and 'exists' or nil end
  local uid, rev, deleting, refs = ARGV[a + 4], ARGV[a + 5], ARGV[a + 6], ARGV[a + 7]
  if not r then
    local deed = ARGV[a]
    if presence == 'p' or uid ~= '' or rev ~= '' or deleting ~= '' or refs ~= '' or deed == 'd' then return 'absent' end
    return nil
  end
  if uid ~= '' and uid ~= r.uid then return 'conflict' end
  if rev ~= '' and rev ~= r.rev then return 'conflict' end
  if deleting == 'n' and r.deleting ~= '' then return 'deleting' end
  if deleting == 'y' and r.deleting == '' then return 'notdeleting' end
  return nil
end

-- unknown returns the entries of types that only a newer release knows. Every
-- write carries them over.
local function unknown(entries)
  local out, i = '', 1
  while i <= #entries do
    local t, hi, lo = byte(entries, i, i + 2)
    local last = i + 2 + hi * 256 + lo
    if t ~= 105 and t ~= 114 and t ~= 120 then out = out .. sub(entries, i, last) end
    i = last + 1
  end
  return out
end

-- kept adds to the entries of a reindex those that do not follow from the body:
-- that of the deletion behind the first, which is the definition, and the expiry.
local function kept(old, new)
  local deleting, expiry, i = '', '', 1
  while i <= #old do
    local t, hi, lo = byte(old, i, i + 2)
    local last = i + 2 + hi * 256 + lo
    if t == 120 then expiry = sub(old, i, last) end
    if t == 105 and sub(old, i + 3, i + 13) == '\2_deleting\0' then deleting = sub(old, i, last) end
    i = last + 1
  end
  local _, hi, lo = byte(new, 1, 3)
  local first = 3 + hi * 256 + lo
  return sub(new, 1, first) .. deleting .. sub(new, first + 1) .. expiry .. unknown(old)
end

-- What is stored, and what of it counts: what is expired is absent.
local actions = #KEYS - 3
local stored, live, was, will = {}, {}, {}, {}
for i = 1, actions do
  local a, key = HEAD + 1 + (i - 1) * STRIDE, KEYS[3 + i]
  local deed, kind, name = ARGV[a], ARGV[a + 1], ARGV[a + 2]
  local r = load(key, deed ~= 'p')
  if r and not r.damaged then
    was[i] = { n = 'n' .. kind .. name }
    if not members(r.entries, kind, name, was[i]) then r, was[i] = { damaged = true }, nil end
  end
  if r and r.damaged then
    -- Only a delete that asks nothing else may go on, with the members to remove.
    if not (deed == 'd' and ARGV[a + 8] == 'damaged') and deed ~= 'e' then return { 'unreadable', tostring(i) } end
  elseif r and deed == 'p' and not r.whole and expired(r, now) then
    r = load(key, true)
  end
  stored[i] = r
  live[i] = (r and (r.damaged or not expired(r, now))) and r or nil
  if deed ~= 'e' and not (r and r.damaged) then
    local failed = judge(a, live[i])
    if not failed and live[i] and ARGV[a + 7] ~= '' and bound(ARGV[a + 7], kind .. name, key) then failed = 'referenced' end
    if failed then
      local current = live[i] and load(key, true)
      return { 'condition', tostring(i), failed, current and current.value or '' }
    end
  end
  if deed == 'r' and live[i] then ARGV[a + 9] = kept(r.entries, ARGV[a + 9]) end
  local more = deed == 'p' and live[i] and unknown(r.entries) or ''
  if more ~= '' then
    ARGV[a + 9] = ARGV[a + 9] .. more
    ARGV[a + 11] = match(ARGV[a + 11], '^(.*\n)%d+\n$') .. #ARGV[a + 9] .. '\n'
  end
  if deed == 'p' or deed == 'r' then
    will[i] = { n = 'n' .. kind .. name }
    members(ARGV[a + 9], kind, name, will[i])
  end
end

-- append writes one entry of the log and returns its revision.
local function append(id, kind, size, key, value, before)
  local head = kind .. '\n' .. format('%d', size) .. '\n' .. ms .. '\n' .. request .. '\n' .. key
  if before then
    call('XADD', KEYS[3], id, 'h', head, 'd', value, 'b', before)
  else
    call('XADD', KEYS[3], id, 'h', head, 'd', value)
  end
  if count == 0 then oldest = ms + 0 end
  count, bytes = count + 1, bytes + size
end

local function revision()
  seq = seq + 1
  return epoch .. '-' .. format('%d', seq)
end

-- reindexed moves a resource from one set of index members to another.
local function reindexed(old, new)
  local gone, come = {}, {}
  for entry, member in pairs(old) do
    if not new[entry] then gone[#gone + 1] = member end
  end
  for entry, member in pairs(new) do
    if not old[entry] then come[#come + 1] = '0' come[#come + 1] = member end
  end
  if #gone > 0 then zset('ZREM', KEYS[2], gone) end
  if #come > 0 then zset('ZADD', KEYS[2], come) end
end

local function remove(i, a)
  local r, key = stored[i], ARGV[a + 1] .. ARGV[a + 2]
  local id = revision()
  if r.damaged then
    append(id, 'x', #key + 192, key, '')
    local gone = {} -- whole members, as the caller found them
    members(ARGV[a + 9], '', '', gone)
    reindexed(gone, {})
  else
    append(id, 'd', r.size + 64, key, r.value)
    reindexed(was[i], {})
  end
  call('DEL', KEYS[3 + i])
  return id
end

local reply = { 'ok', '' }
local first = seq
for i = 1, actions do
  local a, key = HEAD + 1 + (i - 1) * STRIDE, KEYS[3 + i]
  local deed, r = ARGV[a], live[i]
  if deed == 'p' then
    local old = was[i] or {}
    if stored[i] and not r then
      remove(i, a)
      old = {}
    end
    local id, entries = revision(), ARGV[a + 9]
    local uid, created, spec, ext = ARGV[a + 8], ms, id, ''
    if r then
      uid, created, ext = r.uid, r.created, r.ext
      if ARGV[a + 10] ~= 'c' then spec = r.spec end
    end
    local value = id .. '\n' .. spec .. '\n' .. uid .. '\n' .. created .. '\n' .. ms .. '\n' .. ARGV[a + 11] .. ext .. '\n' .. entries .. ARGV[a + 13]
    local size = ARGV[a + 12] + 0
    if not r then
      append(id, 'a', size + 64, ARGV[a + 1] .. ARGV[a + 2], value)
      reindexed(old, will[i])
    elseif r.entries == entries then
      append(id, 'm', size + 64 + r.rowsize, ARGV[a + 1] .. ARGV[a + 2], value)
    else
      append(id, 'm', size + 64 + r.rowsize, ARGV[a + 1] .. ARGV[a + 2], value, r.entries)
      reindexed(old, will[i])
    end
    call('SET', key, value)
    reply[i + 2] = id .. '\n' .. spec .. '\n' .. uid .. '\n' .. created .. '\n' .. ms
  elseif deed == 'd' then
    reply[i + 2] = remove(i, a) .. '\n' .. (r.value or '')
  elseif deed == 'r' then
    local entries = ARGV[a + 9]
    local size, rowsize = ARGV[a + 12], ARGV[a + 11]
    local head = match(r.value, '^[^\n]*\n[^\n]*\n[^\n]*\n%d+\n%d+\n%d*\n%l?\n')
    size = format('%d', size + #r.value - r.at - r.length + 1) -- the caller does not know the body
    local value = head .. size .. '\n' .. rowsize .. '\n' .. #entries .. '\n' .. r.ext .. '\n' .. entries .. sub(r.value, r.at + r.length)
    call('SET', key, value)
    reindexed(was[i], will[i])
    reply[i + 2] = value
  elseif deed == 'e' then
    local s = stored[i]
    if s and not s.damaged and not r then
      remove(i, a)
      reply[i + 2] = '1'
    else
      -- What is gone or cannot be judged must not come up for ever.
      if not s or s.damaged then call('ZREM', KEYS[2], ARGV[a + 9]) end
      reply[i + 2] = ''
    end
  else
    reply[i + 2] = r and r.value or ''
  end
end

-- trim removes the oldest entries that are over the log's bounds, never the last.
local function trim()
  local most, size, age = match(ARGV[6], '^(%d+) (%d+) (%d+)$')
  most, size, age = most + 0, size + 0, age + 0
  local trimmed = call('HGET', KEYS[1], 'trimmed')
  local removed, last = 0, nil
  local from = trimmed and '(' .. trimmed or '-'
  while true do
    local page = call('XRANGE', KEYS[3], from, '+', 'COUNT', '64')
    if #page == 0 then return last end
    for _, entry in ipairs(page) do
      local kind, entrysize, at = match(entry[2][2], '^(%l)\n(%d+)\n(%d+)\n')
      if kind ~= 's' then
        at = tonumber(at) or now / 1000
        if removed == 256 or count <= 1 or count <= most and bytes <= size and now / 1000 - at <= age then
          oldest = at
          return last
        end
        removed, last = removed + 1, entry[1]
        count, bytes = count - 1, math.max(bytes - (tonumber(entrysize) or 0), 0)
      end
      from = '(' .. entry[1]
    end
  end
end
local trimmed
if count > 1 and due(count, bytes) then
  trimmed = trim()
  if trimmed then
    local e, s = match(trimmed, '^(%d+)-(%d+)$')
    call('XTRIM', KEYS[3], 'MINID', '~', e .. '-' .. format('%d', s + 1))
    call('HSET', KEYS[1], 'trimmed', trimmed)
  end
end
if trimmed or seq ~= first then
  call('HSET', KEYS[1], 'seq', format('%d', seq), 'count', format('%d', count), 'bytes', format('%d', bytes), 'oldest', format('%d', oldest))
end
reply[2] = format('%d', seq)
return reply
