// Package link decides which call caused which run. It is pure: it reads and changes the
// values that the assembler passes, emits nothing and knows no stream.
//
//	Place        where a run is in its trace, and by which evidence
//	Tree         resolves parents in one session: ParentOf, CauseOf, Resolve, Attach
//	Correlation  pairs calls with runs of other sessions by an id or a prompt that both print
//	HopName      pairs requests between programs with the calls that caused them, by facts of both
//	Claims       renames the ids of formats whose servers repeat them
//
// Its decisions depend on the facts that the messages state and never on their order: of two
// links the stronger method wins, and a correlation is paired as a set.
package link
