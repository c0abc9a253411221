module github.com/earshot-dev/earshot

go 1.26.0
