package redis

import (
	"strconv"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
)

// History describes the loss of changes that this gateway has seen: a shard has begun another history without them.
type History struct {
	Shard int
	// Before and Now are the epochs before and after the loss.
	Before, Now uint64
	// Lost is the number of seen changes that are missing. It is 0 if that is not known, because the server was
	// emptied, is another server, or was restored from a copy older than the epoch.
	Lost uint64
}

// noteHistory logs that a shard has begun another history, and reports lost changes to Config.LostHistory. seen is
// the newest revision that this gateway has seen. ended is the last sequence number that the server has in the epoch
// of seen.
func (c *core) noteHistory(h History, seen backend.Revision, ended string) {
	fields := []zap.Field{
		zap.Int("shard", h.Shard), zap.Uint64("epochBefore", h.Before), zap.Uint64("epoch", h.Now),
		zap.Stringer("seen", seen),
	}
	last, err := strconv.ParseUint(ended, 10, 64)
	switch {
	case seen.IsZero() || seen.Epoch >= h.Now || err == nil && last >= seen.Seq:
		c.cfg.Logger.Info("the server begins a new history; nothing is lost that this gateway saw", fields...)
		return
	case err == nil:
		h.Lost = seen.Seq - last
		c.cfg.Logger.Error(
			"the server has lost changes that this gateway saw", append(fields, zap.Uint64("lost", h.Lost))...,
		)
	default:
		c.cfg.Logger.Error("the server has nothing of the history that this gateway saw: it was emptied, is another one, or was restored from an old copy; "+
			"how much is lost is not known", fields...)
	}
	c.lostHistories.Add(1)
	if c.cfg.LostHistory != nil {
		c.background(func() { c.cfg.LostHistory(h) })
	}
}

// LostHistories returns how often changes that this gateway has seen were found to be missing.
func (s *Store) LostHistories() uint64 { return s.core.lostHistories.Load() }
