package body

import "fmt"

// Tape is the table of spans as text.
func (b *Body) Tape() string { return fmt.Sprint(b.tape) }
