// Package dependency decides which targets of its references a resource waits for and which it relies on, and computes
// the conditions that say so. It reads and writes nothing itself; package reconcile does that.
//
// The life of a resource, as far as its references go:
//
//	             a reference's target is missing,
//	             unready or being deleted            all targets are ready
//	create ---> waiting ----------------------------------> bound
//	              ^  conditions: "Waiting for X"              |  conditions: Available, or
//	              |                                           |  Progressing until its
//	              +--- the spec names another target ---------+  controller reports
//	                                                          |
//	            delete: FINALIZING or PENDING until its finalizers are removed and no
//	            guarded reference to it is bound; then it is gone
package dependency
