package conformance

// Lacks says what the two forms of a conversation cannot carry.
type Lacks struct{}
