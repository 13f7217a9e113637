package server

// State is what a server does now, for operators.
type State struct {
	// MemoryBytes of MemoryLimit are in use by requests, operations, answers and events.
	MemoryBytes int64 `json:"memoryBytes"`
	MemoryLimit int64 `json:"memoryLimit"`
	// WaitingForMemory and WaitingForTurn count the operations and events that wait.
	WaitingForMemory int `json:"waitingForMemory"`
	WaitingForTurn   int `json:"waitingForTurn"`
	// AnswersBytes are those of kept answers.
	AnswersBytes int64 `json:"answersBytes"`
	// OlderCatalogueStreams are change streams that began on a catalogue that was replaced since.
	OlderCatalogueStreams int `json:"olderCatalogueStreams"`
	// Draining reports whether the server has begun to stop.
	Draining bool `json:"draining"`
	// Callers are those who take most. Anonymous ones on this machine are not counted.
	Callers []CallerState `json:"callers"`
}

// maxCallers is how many callers a [State] has.
const maxCallers = 20

// State returns what the server does now.
func (s *Server) State() State {
	_, older := s.olderStreams()
	return State{
		MemoryBytes:           s.memory.Used(),
		MemoryLimit:           s.cfg.Limits.Memory,
		WaitingForMemory:      s.memory.Waiting(),
		WaitingForTurn:        s.cpuSlots.Waiting(),
		AnswersBytes:          int64(s.generation.Load().answers.Size()),
		OlderCatalogueStreams: older,
		Draining:              s.draining.Err() != nil,
		Callers:               s.callers.noisiest(maxCallers),
	}
}
