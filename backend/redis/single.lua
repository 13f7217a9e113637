-- The eighth argument is the condition that nothing refers to the resource.
if #KEYS == 4 and ARGV[HEAD + 1] == 'p' and ARGV[HEAD + 8] == '' then
  local reply = alone(KEYS[4], HEAD, request)
  if reply then
    saveHead()
    return reply
  end
end
