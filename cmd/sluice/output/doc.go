// Package output writes resources for people and for programs: tables, YAML,
// JSON, names, and what a JSONPath template or columns of one's own pick out.
// Nothing that is stored reaches a terminal as a command.
package output
