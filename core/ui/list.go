package ui

import "github.com/earshot-dev/earshot/core/ui/address"

// list has the pages; those with a name are in the navigation, in this order.
func (u *UI) list() []page {
	boardRange := address.Range{From: "now-6h", To: "now"}
	return []page{
		// The delegations that took longest belong here.

		{name: "Conversations", pattern: "/{$}", template: "sessions.html", untimed: true, load: u.sessions},
		{pattern: "/session/{id...}", template: "session.html", untimed: true, load: u.session},

		{name: "Boards", pattern: "/boards", template: "boards.html", style: "board.css", load: u.boards},
		{pattern: "/boards/{name}", template: "board.html", style: "uplot.css board.css", script: "uplot.js board.js", since: boardRange, streamed: true, load: u.board},
		{pattern: "/boards/{name}/{panel}", template: "panel.html", style: "uplot.css board.css", script: "uplot.js board.js", since: boardRange, streamed: true, load: u.board},

		// The search belongs here: the box in the head of every page is there when a page has the pattern /search.

		// Cost and comparison belong here.

		{name: "Now", pattern: "/now", template: "now.html", untimed: true, load: u.now},

		{name: "Tools", pattern: "/tools", template: "tools.html", load: u.tools},
	}
}
