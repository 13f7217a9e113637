package descriptor

import "regexp/syntax"

// MaxPattern is the maximum number of instructions in the compiled program of a pattern. A match takes up to 2.5 ns for
// each instruction and byte, and cannot be interrupted.
const MaxPattern = 1000

// PatternSize returns the number of instructions in the compiled program of a pattern.
func PatternSize(pattern string) (int, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, err
	}
	return len(program.Inst), nil
}
