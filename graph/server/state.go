package server

// State describes what a server is doing, for operators.
type State struct {
	// MemoryBytes is the memory in use by requests, operations, answers and events; MemoryLimit is its maximum.
	MemoryBytes int64 `json:"memoryBytes"`
	MemoryLimit int64 `json:"memoryLimit"`
	// WaitingForMemory is the number of operations and events that wait for memory, and WaitingForTurn the number that
	// wait for a processor.
	WaitingForMemory int `json:"waitingForMemory"`
	WaitingForTurn   int `json:"waitingForTurn"`
	// AnswersBytes is the size of the kept answers.
	AnswersBytes int64 `json:"answersBytes"`
	// OlderCatalogueStreams is the number of streams that began with a catalogue that was replaced.
	OlderCatalogueStreams int `json:"olderCatalogueStreams"`
	// Draining reports whether the server has begun to drain.
	Draining bool `json:"draining"`
	// Callers are the callers that use most. Anonymous callers on this machine are not counted.
	Callers []CallerState `json:"callers"`
}

// maxCallers is the maximum number of callers in a [State].
const maxCallers = 20

// State returns a snapshot of what the server is doing now.
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
