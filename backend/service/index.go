package service

import "context"

// indexed says whether the index rows of a kind are all of this gateway's
// definition, so that a run of them holds all that matches.
func (s *Service) indexed(context.Context, *kind) bool { return true }
