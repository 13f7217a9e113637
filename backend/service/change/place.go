package change

import "github.com/sluicegw/sluice/backend"

// Place is a place in the state: before a page, or within it. A page is the result of one call of
// [Stream.Poll]: resources, and then changes of resources that were sent.
//
//	at                                          end
//	 |  SNAPSHOT a  SNAPSHOT b  MODIFIED a  ...  |  the next page
//
// A stream that goes on within a page reads it again from behind the last resource that was sent, and the log
// from the position of the page. The page may have shown newer resources than that, so the place has the
// revisions that were sent: no change is sent twice, and the deletion of a resource that was sent is not
// lost.
type Place struct {
	at, end snapshot
	told    []toldChange
}

// toldChange is a change of a page; key is zero for a mark.
type toldChange struct {
	key      backend.Key
	revision backend.Revision
	kind     Type
	position backend.Position
}

// tell notes the changes of the page, and the state behind it; nil for none.
func (p *Place) tell(page []Change, end *snapshot) {
	if end != nil {
		p.end = *end
	}
	p.told = make([]toldChange, len(page))
	for i := range page {
		c := &page[i]
		p.told[i] = toldChange{kind: c.Type, position: c.position}
		if c.Stored != nil {
			p.told[i].key, p.told[i].revision = c.Stored.Key, c.Stored.Revision
		}
	}
}

// Behind returns the place behind the first n changes of the page.
func (p *Place) Behind(n int) *Place {
	switch {
	case n == 0:
		return p
	case n >= len(p.told):
		return &Place{at: p.end}
	}
	out := p.at
	out.told = &sentPage{kind: p.at.kind, after: p.at.after, revisions: map[backend.Key]backend.Revision{}}
	if p.at.told != nil {
		page := p.at.page()
		out.told = &page
	}
	for i := range p.told[:n] {
		switch c := &p.told[i]; c.kind {
		case Snapshot:
			out.told.revisions[c.key] = c.revision
			out.after = backend.Successor(backend.OrderTuple(c.key.Namespace, c.key.Name))
		case Deleted:
			delete(out.told.revisions, c.key)
		default:
			out.told.revisions[c.key] = c.revision
		}
	}
	if last := &p.told[n-1]; p.told[n].kind != Snapshot { // all resources of the page were told
		out.kind, out.after = p.end.kind, p.end.after
		if last.kind != Snapshot {
			out.position = last.position
		}
	}
	return &Place{at: out}
}
