-- A short cut for the most common batch: one put that creates a resource, or that
-- replaces one without changing its entries. apply.lua does the same at twice the
-- cost. Everything else is left to apply.lua, before anything is written. key is that
-- of the resource, and the arguments of the action follow from.
local function alone(key, from, request)
  local _, kind, name, presence, wanted, revision, deleting, _, unfinalized, uid, finalizers, entries, caller, fields, size, body = unpack(ARGV, from + 1, from + STRIDE)
  size = size + 64
  local unlogged = isInternal(kind)
  local last = format('%d', (unlogged and internal or seq) + 1)
  local id = epoch .. '-' .. last
  local event, spec, created, ext, members = 'a', id, ms, '', nil
  -- More than the header and the same entries is not looked at.
  local v = call('GETRANGE', key, '0', format('%d', #entries + 511))
  if v == '' then
    if presence == 'p' or wanted ~= '' or revision ~= '' or deleting ~= '' or unfinalized ~= '' then return end
    if finalizers == '' then finalizers = '0' end
    members = { '0', 'n' .. kind .. name }
    local i, n, m = 1, #entries, 2
    while i <= n do -- see members() in record.lua
      local t, hi, lo = byte(entries, i, i + 2)
      local last = i + 2 + hi * 256 + lo
      members[m + 1] = '0'
      if t == 105 or t == 120 then
        members[m + 2] = sub(entries, i, i) .. kind .. sub(entries, i + 3, last) .. name
      else
        members[m + 2] = sub(entries, i, i) .. sub(entries, i + 3, last) .. kind .. name
      end
      i, m = last + 1, m + 2
    end
    if m > 2000 then return end
  else
    local rev, oldspec, olduid, oldcreated, held, expires, gone, _, rowsize, length, oldext, at = match(v, HEADER)
    if not rev or presence == 'a' or expires ~= '' or wanted ~= '' and wanted ~= olduid or revision ~= '' and revision ~= rev or
      deleting ~= '' and (deleting == 'y') ~= (gone ~= '') or unfinalized ~= '' and held ~= '0' or sub(v, at, at + length - 1) ~= entries then return end
    event, uid, created, ext, size = 'm', olduid, oldcreated, oldext, size + rowsize
    if caller ~= 'c' then spec = oldspec end
    if finalizers == '' then finalizers = held end
  end
  -- apply.lua trims the log whenever it is due, also if the put is not logged.
  if unlogged then
    if count > 1 and due(count, bytes) then return end
  elseif count == 0 or due(count + 1, bytes + size) then
    return
  end
  local stamped = id .. '\n' .. spec .. '\n' .. uid .. '\n' .. created .. '\n' .. ms .. '\n' .. finalizers
  local value = stamped .. '\n' .. fields .. ext .. '\n' .. entries .. body
  call('SET', key, value)
  grown(#value)
  if members then call('ZADD', KEYS[2], unpack(members)) end
  if unlogged then
    internal = internal + 1
    return { 'ok', epoch .. '-' .. format('%d', seq), stamped }
  end
  call('XADD', KEYS[3], id, 'h', event .. '\n' .. format('%d', size) .. '\n' .. ms .. '\n' .. request .. '\n' .. kind .. name, 'd', value)
  seq, count, bytes = seq + 1, count + 1, bytes + size
  return { 'ok', id, stamped }
end
local firstSeq, firstInternal = seq, internal
-- saveHead stores what the short cut changed of the head of the log.
local function saveHead()
  if seq ~= firstSeq then
    call('HSET', KEYS[1], 'seq', format('%d', seq), 'count', format('%d', count), 'bytes', format('%d', bytes))
  end
  if internal ~= firstInternal then call('HSET', KEYS[1], 'internal', format('%d', internal)) end
end
