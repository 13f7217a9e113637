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

-- action returns the arguments of the i-th action by name, see action in
-- proposal.go: the operation, the tuples of kind and name, the condition (presence, uid,
-- revision, deleting, referrers, unfinalized, and passes behind members), what a put, a
-- reindex or a rebind stores, and members to remove.
local function action(i)
  local a, from = {}, HEAD + (i - 1) * STRIDE
  a.op, a.kind, a.name, a.presence, a.uid, a.revision, a.deleting, a.referrers, a.unfinalized, a.newuid, a.finalizers, a.entries, a.caller, a.fields, a.size, a.body,
    a.members, a.passes, a.rowsize, a.declared, a.refs, a.refsize = unpack(ARGV, from + 1, from + STRIDE)
  a.own, a.unlogged = a.kind .. a.name, isInternal(a.kind)
  a.deletes = a.op == 'd' or a.op == 'x'
  return a
end

-- judge returns the name of the condition that fails, nil if all hold.
local function judge(a, r)
  if a.presence == 'a' then return r and 'exists' or nil end
  if not r then
    if a.presence == 'p' or a.uid ~= '' or a.revision ~= '' or a.deleting ~= '' or a.referrers ~= '' or a.unfinalized ~= '' or a.passes ~= '' or a.deletes then
      return 'absent'
    end
    return nil
  end
  if a.uid ~= '' and a.uid ~= r.uid then return 'conflict' end
  if a.revision ~= '' and a.revision ~= r.rev then return 'conflict' end
  if a.passes ~= '' and a.passes ~= r.passes then return 'conflict' end
  if a.deleting == 'n' and r.deleting ~= '' then return 'deleting' end
  if a.deleting == 'y' and r.deleting == '' then return 'notdeleting' end
  return nil
end

-- unknown returns the entries of types that only a newer release knows. Every
-- write keeps them.
local function unknown(entries)
  local out, i = '', 1
  while i <= #entries do
    local t, hi, lo = byte(entries, i, i + 2)
    local last = i + 2 + hi * 256 + lo
    if t ~= 105 and t ~= 120 then out = out .. sub(entries, i, last) end
    i = last + 1
  end
  return out
end

-- kept adds to the entries of a reindex those that a reindex does not change: the
-- row of the deleting index, which comes second after that of the definition, the
-- expiry, and unknown ones.
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

-- stored is what is stored, live is what of it is not expired; was and will are
-- the members before and after.
local actions = {}
local stored, live, was, will = {}, {}, {}, {}
for i = 1, #KEYS - 3 do
  local a, key = action(i), KEYS[3 + i]
  actions[i] = a
  local r = load(key, a.op ~= 'p')
  if r and not r.damaged then
    was[i] = { n = 'n' .. a.own }
    if not members(r.entries, a.kind, a.name, was[i]) or not members(r.refs, a.kind, a.name, was[i]) then r, was[i] = { damaged = true }, nil end
  end
  if r and r.damaged then
    -- Only a delete that comes with the members to remove may go on.
    if a.op ~= 'x' and a.op ~= 'e' then return { 'unreadable', tostring(i) } end
  elseif r and a.op == 'p' and not r.whole and expired(r, now) then
    r = load(key, true)
  end
  stored[i] = r
  live[i] = (r and (r.damaged or not expired(r, now))) and r or nil
  if a.op ~= 'e' and not (r and r.damaged) then
    local failed = judge(a, live[i])
    if not failed and live[i] and a.referrers ~= '' and bound(a.referrers, a.own, key) then failed = 'referenced' end
    if not failed and live[i] and a.unfinalized ~= '' and live[i].finalizers ~= '0' then failed = 'finalized' end
    if failed then
      local current = live[i] and load(key, true)
      return { 'condition', tostring(i), failed, current and current.value or '' }
    end
  end
  if live[i] and not r.damaged then
    if a.op == 'r' then a.entries = kept(r.entries, a.entries) end
    if a.op == 'p' then a.entries = a.entries .. unknown(r.entries) end
    if a.op == 'b' then a.entries, a.rowsize = r.entries, r.rowsize end
    if a.op == 'r' or a.op == 'p' and a.declared == '' then
      a.refs, a.refsize, a.declared, a.keeps = r.refs, r.refsize, r.declared, true
    end
  end
  if a.op == 'p' or a.op == 'r' or a.op == 'b' then
    will[i] = { n = 'n' .. a.own }
    members(a.entries, a.kind, a.name, will[i])
    members(a.refs, a.kind, a.name, will[i])
  end
end

-- revision numbers the next change.
local function revision(a)
  if a.unlogged then
    internal = internal + 1
    return epoch .. '-' .. format('%d', internal)
  end
  seq = seq + 1
  return epoch .. '-' .. format('%d', seq)
end

-- append writes one entry of the log.
local function append(a, id, event, size, value, before)
  if a.unlogged then return end
  local head = event .. '\n' .. format('%d', size) .. '\n' .. ms .. '\n' .. request .. '\n' .. a.own
  if before then
    call('XADD', KEYS[3], id, 'h', head, 'd', value, 'b', before)
  else
    call('XADD', KEYS[3], id, 'h', head, 'd', value)
  end
  if count == 0 then oldest = ms + 0 end
  count, bytes = count + 1, bytes + size
end

-- reindexed removes members that are only in old and adds those only in new.
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

local function remove(i)
  local a, r = actions[i], stored[i]
  local id = revision(a)
  if r.damaged then
    append(a, id, 'x', #a.own + 192, '')
    local gone = {}
    wholeMembers(a.members, gone)
    reindexed(gone, {})
  else
    append(a, id, 'd', r.size + 64, r.value)
    reindexed(was[i], {})
  end
  call('DEL', KEYS[3 + i])
  return id
end

local reply = { 'ok', '' }
for i, a in ipairs(actions) do
  local key, r = KEYS[3 + i], live[i]
  if a.op == 'p' then
    local old = was[i] or {}
    if stored[i] and not r then
      remove(i)
      old = {}
    end
    local id = revision(a)
    local uid, created, spec, ext, finalizers, passes = a.newuid, ms, id, '', a.finalizers, '1'
    if r then
      uid, created, ext, passes = r.uid, r.created, r.ext, r.passes
      if a.caller ~= 'c' then spec = r.spec end
    end
    if finalizers == '' then finalizers = r and r.finalizers or '0' end
    local stamped = id .. '\n' .. spec .. '\n' .. uid .. '\n' .. created .. '\n' .. ms .. '\n' .. finalizers
    local size = a.size + a.refsize
    local value = record(stamped, a.fields, size, a.rowsize, a.entries, a.refsize, a.refs, a.declared, passes, ext, a.body)
    if not r then
      append(a, id, 'a', size + 64, value)
      reindexed(old, will[i])
    elseif r.entries == a.entries then
      append(a, id, 'm', size + 64 + r.rowsize, value)
      if r.refs ~= a.refs then reindexed(old, will[i]) end
    else
      append(a, id, 'm', size + 64 + r.rowsize, value, r.entries)
      reindexed(old, will[i])
    end
    call('SET', key, value)
    grown(#value)
    reply[i + 2] = stamped .. '\n' .. passes .. (a.keeps and '\n' .. a.declared .. '\n' .. a.refs or '')
  elseif a.deletes then
    reply[i + 2] = remove(i) .. '\n' .. (r.value or '')
  elseif a.op == 'r' or a.op == 'b' then
    local stamped, fields = match(r.value, '^([^\n]*\n[^\n]*\n[^\n]*\n%d+\n%d+\n%d+)\n(%d*\n%l?)\n')
    local size = r.size - r.rowsize + a.rowsize - r.refsize + a.refsize -- the caller does not know the body
    local passes = a.op == 'b' and format('%d', r.passes + 1) or r.passes
    local value = record(stamped, fields, size, a.rowsize, a.entries, a.refsize, a.refs, a.declared, passes, r.ext, sub(r.value, r.bodyat))
    call('SET', key, value)
    grown(#value)
    reindexed(was[i], will[i])
    reply[i + 2] = value
  elseif a.op == 'e' then
    local s = stored[i]
    if s and not s.damaged and not r then
      remove(i)
      reply[i + 2] = '1'
    else
      -- What is gone or cannot be judged must not come up again in every purge.
      if not s or s.damaged then call('ZREM', KEYS[2], a.members) end
      reply[i + 2] = ''
    end
  else
    reply[i + 2] = r and r.value or ''
  end
end

saveHead()
reply[2] = epoch .. '-' .. format('%d', seq)
return reply
