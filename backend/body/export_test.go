package body

import "fmt"

// Tape is the table of spans as text.
func (b *Body) Tape() string { return fmt.Sprintf("%x", b.tape) }
