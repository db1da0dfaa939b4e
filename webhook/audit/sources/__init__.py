"""Where an audit reads objects: a live cluster, or a dump of one."""
