-- Health of a DiscoveryRun for Argo CD, from its conditions alone, as kstatus reads them.
local health = {status = "Progressing", message = "the operator has not seen it yet"}
local status = obj.status
if status == nil or status.conditions == nil then
  return health
end
if status.observedGeneration ~= nil and obj.metadata.generation ~= nil and status.observedGeneration ~= obj.metadata.generation then
  health.message = "the operator has not seen the last change yet"
  return health
end
local found = {}
for _, condition in ipairs(status.conditions) do
  found[condition.type] = condition
end
local function is(kind)
  return found[kind] ~= nil and found[kind].status == "True"
end
local function told(kind)
  local condition = found[kind]
  if condition.message ~= nil and condition.message ~= "" then
    return condition.reason .. ": " .. condition.message
  end
  return condition.reason
end
if is("Ready") then
  return {status = "Healthy", message = told("Ready")}
end
if is("Stalled") then
  return {status = "Degraded", message = told("Stalled")}
end
if is("Suspended") then
  return {status = "Suspended", message = told("Suspended")}
end
if found.Reconciling ~= nil then
  health.message = told("Reconciling")
end
return health
