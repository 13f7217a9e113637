-- action returns the arguments of an action by name, see action in proposal.go: the
-- operation, the tuples of kind and name, the condition (presence, uid, revision, bindingversion,
-- deletion, referrers, unfinalized), what a put or a rebind stores, more: the change
-- that a put describes, behind its sum, or members of the index to remove; and the times of a
-- put that comes from another store, in milliseconds.
local function action(from)
  local op, kind, name, presence, uid, revision, bindingversion, deletion, referrers, unfinalized, newuid, caller, finalizers, expires, deleting, declared, refs, refsize,
    boundsize, size, body, bodysum, more, created, updated = unpack(ARGV, from + 1, from + STRIDE)
  return {
    op = op, kind = kind, name = name, own = kind .. name, presence = presence, uid = uid, revision = revision, bindingversion = bindingversion,
    deletion = deletion, referrers = referrers, unfinalized = unfinalized, newuid = newuid, caller = caller, finalizers = finalizers,
    expires = expires, deleting = deleting, declared = declared, refs = refs, refsize = refsize, boundsize = boundsize, size = size,
    body = body, bodysum = bodysum, more = more, created = created, updated = updated,
    unlogged = byte(kind, 2) == 95, -- '_' behind the tag of the tuple
  }
end

-- bound reports whether a live resource other than the key's holds a bound reference to
-- it. A referrer that does not decode counts as live, and so does one that is not there: then its member of
-- the index is damaged.
local function bound(a, key)
  local items = sub(key, 1, #key - #a.own)
  local prefix, from = a.referrers, '[' .. a.referrers
  while true do
    local page = call('ZRANGE', KEYS[2], from, '(' .. prefix .. '\255', 'BYLEX', 'LIMIT', '0', '64')
    for _, member in ipairs(page) do
      local referrer = sub(member, #prefix + 1)
      if referrer ~= a.own then
        local r = load(items .. referrer, referrer, false)
        if not r or r.damaged or not expired(r) then return true end
      end
      from = '(' .. member
    end
    if #page < 64 then return false end
  end
end

-- judge returns the name of the condition that fails, nil if all hold. r is the live record or nil.
local function judge(a, r, key)
  if a.presence == 'a' then return r and 'exists' or nil end
  if not r then
    if a.presence == 'p' or a.uid ~= '' or a.revision ~= '' or a.bindingversion ~= '' or a.deletion ~= '' or a.referrers ~= '' or a.unfinalized ~= '' or
      a.op == 'd' or a.op == 'x' then return 'absent' end
    return nil
  end
  if a.uid ~= '' and a.uid ~= r.uid or a.revision ~= '' and a.revision ~= r.rev or a.bindingversion ~= '' and a.bindingversion ~= r.bindingversion then return 'conflict' end
  if a.deletion == 'n' and r.deleting ~= '' then return 'deleting' end
  if a.deletion == 'y' and r.deleting == '' then return 'notdeleting' end
  if a.referrers ~= '' and bound(a, key) then return 'referenced' end
  if a.unfinalized ~= '' and r.finalizers ~= '0' then return 'finalized' end
  return nil
end

-- revision returns the revision of the next change. A logged change counts once append has written it.
local function revision(a)
  if a.unlogged then
    internal = internal + 1
    return epoch .. '-' .. format('%d', internal)
  end
  return epoch .. '-' .. format('%d', seq + 1)
end

-- by are the request id and the actor of the batch, and weight is what each of its
-- entries counts besides the resource.
local by, weight

-- append writes one entry of the log, see entry.go. header and body are the new record; before are
-- fields of the record that it replaces, and change is the change of a put.
local function append(a, id, event, size, before, header, body, change)
  if a.unlogged then return end
  size = size + weight
  local head = event .. '\n' .. format('%d', size) .. '\n' .. ms .. '\n' .. by .. '\n' .. before .. a.own
  write('XADD', KEYS[3], id, 'h', head .. sumOf(id .. head .. sub(change, 1, 4)), 'd', header, 'b', body, 'c', change)
  seq = seq + 1
  if count == 0 then oldest = ms + 0 end
  count, bytes = count + 1, bytes + size
end

-- remove deletes the stored record r, or what does not decode, and its members of the index.
local function remove(a, r, key)
  local id, gone = revision(a), nil
  if r.damaged then
    append(a, id, 'x', a.size, '', '', '', '')
    gone = {}
    add(gone, a.more, '', '')
  else
    append(a, id, 'd', a.size + #r.value - r.bodyat + 1 + r.refsize, '', r.value, '', '')
    gone = r.members or members(a, r)
  end
  reindex(gone, {})
  write('DEL', key)
  return id
end

-- put stores a resource. r is the live record that it replaces, or nil.
local function put(a, r, key)
  local id = revision(a)
  local spec, uid, created, finalizers, bindingversion, ext = '', a.newuid, ms, a.finalizers, '1', ''
  local updated = ms
  if a.created ~= '' then
    created, updated = a.created, a.updated
  end
  if r then
    uid, created, bindingversion, ext = r.uid, r.created, r.bindingversion, r.ext
    if a.caller == '' then spec = r.spec ~= '' and r.spec or r.rev end
    if finalizers == '' then finalizers = r.finalizers end
    if a.declared == '' then a.declared, a.refs, a.refsize, a.boundsize = r.declared, r.refs, r.refsize, r.boundsize end
  elseif finalizers == '' then
    finalizers = '0'
  end
  local header = record(a.own, id .. '\n' .. updated .. '\n' .. a.expires .. '\n' .. a.deleting .. '\n', spec, uid, created, finalizers, a.refsize, a.boundsize, a.refs,
    a.declared, bindingversion, ext, a.bodysum)
  local size = a.size + #a.body + a.refsize
  if not r then
    append(a, id, 'a', size, '', header, a.body, '')
    reindex({}, members(a, a))
  else
    local same = r.refs == a.refs
    append(a, id, 'm', size + math.max(#a.more - 4, 0) + r.boundsize, r.before .. (same and '\n' or #r.refs .. '\n' .. r.refs), header, a.body, a.more)
    if not same or r.expires ~= a.expires or r.deleting ~= a.deleting then reindex(r.members or members(a, r), members(a, a)) end
  end
  write('SET', key, header .. a.body)
  grown(#header + #a.body + #a.more + (r and #r.refs or 0))
  return header
end

-- rebind replaces the references of r and nothing else. It is no change in the log.
local function rebind(a, r, key)
  local value = record(a.own, r.before, r.spec, r.uid, r.created, r.finalizers, a.refsize, a.boundsize, a.refs, a.declared, format('%d', r.bindingversion + 1), r.ext, r.bodysum) ..
    sub(r.value, r.bodyat)
  a.expires, a.deleting = r.expires, r.deleting
  reindex(r.members or members(a, r), members(a, a))
  write('SET', key, value)
  grown(#value)
  return value
end

-- act makes one change of a batch whose conditions hold, and returns its part of the reply. s is the stored
-- record, and r the same if it is live, else nil.
local function act(a, s, r, key)
  if a.op == 'p' then
    if s and not r then remove(a, s, key) end
    return put(a, r, key)
  elseif a.op == 'd' or a.op == 'x' then
    return remove(a, r, key) .. '\n' .. (r.value or '')
  elseif a.op == 'b' then
    return rebind(a, r, key)
  elseif a.op == 'e' then
    if s and not s.damaged and not r then
      remove(a, s, key)
      return '1'
    end
    -- What is gone or cannot be judged must not come up again in every purge, and nor must a member that is
    -- none of the resource's.
    local gone, own = {}, s and not s.damaged and members(a, s) or {}
    add(gone, a.more, '', '')
    for member in pairs(own) do gone[member] = nil end
    reindex(gone, {})
    return ''
  end
  return r and r.value or ''
end

-- read returns the record under the key of an action, as load does. A put needs the body only if the
-- record is expired: it logs the record's deletion.
local function read(a, key)
  local r = load(key, a.own, a.op ~= 'p')
  if not r or r.damaged then return r end
  if r.refs ~= a.refs then
    r.members = members(a, r)
    if not r.members then return { damaged = true } end
  end
  if a.op == 'p' and not r.whole and expired(r) then return load(key, a.own, true) end
  return r
end

-- permit judges the i-th action of a batch. s is the stored record. It returns the record if it is live,
-- else nil; and the reply that refuses the batch, nil if the action may go on.
local function permit(i, a, s, key)
  if s and s.damaged then
    -- Only a delete that comes with the members to remove may go on.
    if a.op ~= 'x' and a.op ~= 'e' then return nil, { 'unreadable', tostring(i) } end
    return s, nil
  end
  local live = s and not expired(s) and s or nil
  local failed = a.op ~= 'e' and judge(a, live, key)
  if failed then
    local current = live and load(key, a.own, true)
    return nil, { 'condition', tostring(i), failed, current and current.value or '' }
  end
  return live, nil
end

-- apply judges n actions and then makes them, and returns the reply to their batch. Their keys follow
-- KEYS[k] and their arguments ARGV[from].
local function apply(k, from, n)
  local actions, stored, live = {}, {}, {}
  for i = 1, n do
    local a, key, refused = action(from + (i - 1) * STRIDE), KEYS[k + i], nil
    actions[i], stored[i] = a, read(a, key)
    live[i], refused = permit(i, a, stored[i], key)
    if refused then return refused end
  end
  local reply = { 'ok', '' }
  for i = 1, n do
    reply[i + 2] = act(actions[i], stored[i], live[i], KEYS[k + i])
  end
  reply[2] = epoch .. '-' .. format('%d', seq)
  return reply
end

-- failure returns the reply for what pcall caught.
local function failure(word, err)
  return { word, type(err) == 'table' and err.err or tostring(err) }
end

-- catchUp moves seq to the last entry of the log: where the head could not be stored, there are entries beyond it.
local function catchUp()
  local last = redis.pcall('XREVRANGE', KEYS[3], '+', '-', 'COUNT', '1')[1]
  local at, top = match(last and last[1] or '', '^(%d+)-(%d+)$')
  if at == epoch then seq = math.max(seq, tonumber(top)) end
end

-- run returns the reply to one batch of n actions, and whether the head has to be stored.
local function run(deadline, k, from, n)
  if deadline ~= '' and now > tonumber(deadline) then return { 'deadline' }, false end
  wrote = false
  local done, reply = pcall(apply, k, from, n)
  if not done then
    catchUp()
    return failure(wrote and 'unknown' or 'error', reply), true
  end
  return reply, reply[1] == 'ok'
end

-- k and from are the last key and the last argument before the next batch.
local replies, k, from, dirty = {}, 3, HEAD, false
while from < #ARGV do
  local deadline, n, reply, changed
  deadline, by, weight, n = unpack(ARGV, from + 1, from + BATCH)
  reply, changed = run(deadline, k, from + BATCH, tonumber(n))
  replies[#replies + 1], dirty = reply, dirty or changed
  k, from = k + n, from + BATCH + n * STRIDE
end
if dirty then
  local saved, err = pcall(saveHead)
  for i, reply in ipairs(saved and {} or replies) do
    if reply[1] == 'ok' then replies[i] = failure('unknown', err) end
  end
end
return replies
