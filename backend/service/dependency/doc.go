// Package dependency decides whether a resource relies on the target of a reference or waits for it. It also computes
// the conditions that report this. It neither reads nor writes resources; package reconcile does.
//
// The states of a resource that follow from its references:
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
