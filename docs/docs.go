// Package docs has the documents that the program itself shows.
package docs

import _ "embed"

// Questions is questions.md: the views, and a query for each of the usual questions.
//
//go:embed questions.md
var Questions string
