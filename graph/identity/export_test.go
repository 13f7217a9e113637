package identity

import "time"

// RelearnEvery sets how often the issuers are asked anew. It is called before Run.
func (x *Issuers) RelearnEvery(d time.Duration) {
	for _, one := range x.all {
		one.relearn = d
	}
}
