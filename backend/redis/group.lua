-- Several batches of one put each, of callers that know nothing of each other. Each
-- is judged by itself, after those before it. The script is batch.lua, put.lua and
-- this.
-- KEYS  meta, index, log, then the resource of each batch
-- ARGV  HEAD arguments, with neither deadline nor request, then of each batch its
--       deadline, its request and STRIDE arguments of its action
-- The reply has that of each batch. An empty one says that nothing was done and that
-- the batch is to be sent by itself.
local replies = {}
for i = 1, #KEYS - 3 do
  local from = HEAD + (i - 1) * (STRIDE + 2) + 2
  local latest = ARGV[from - 1]
  if latest ~= '' and now > tonumber(latest) then
    replies[i] = { 'deadline' }
  else
    local fine, reply = pcall(alone, KEYS[3 + i], from, ARGV[from])
    if fine then
      replies[i] = reply or {}
    else
      replies[i] = { 'error', type(reply) == 'table' and reply.err or tostring(reply) }
    end
  end
end
saveHead()
return replies
