"""Plans that are trees of joins (section 4.2): written, made into steps, priced, searched for."""
