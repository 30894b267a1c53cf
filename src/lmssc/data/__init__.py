"""What a user passes, checked: views, labels, scaling, and the order that depends on content alone."""
