// Package hugepage puts the memory of the process into huge pages, where the operating
// system has them.
//
// A gateway keeps much in memory and reads it all over the place. With pages of 4 KiB most
// such reads miss the processor's table of translations (TLB) as well, which a virtual
// machine pays several times over. Go's runtime asks for no huge pages, and most systems
// give them only to those who ask.
package hugepage
